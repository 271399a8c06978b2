# SPDX-License-Identifier: Apache-2.0
"""Rewrites of steps, each a pure function of its own file."""
