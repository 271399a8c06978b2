# SPDX-License-Identifier: Apache-2.0
"""Ways to write a graph and to run it."""
