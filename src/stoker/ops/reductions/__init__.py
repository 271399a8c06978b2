# SPDX-License-Identifier: Apache-2.0
"""Reductions: operators that compute one value from many."""
