# SPDX-License-Identifier: Apache-2.0
"""Passes: rewrites of steps, each a pure function in its own file."""
