# SPDX-License-Identifier: Apache-2.0
"""Scripts in the shapes of public ones, to run untouched and taken over; ``make recipes`` measures them."""
