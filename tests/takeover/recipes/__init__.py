# SPDX-License-Identifier: Apache-2.0
"""Scripts of the shape that people have, to run untouched and taken over; ``make recipes`` measures them."""
