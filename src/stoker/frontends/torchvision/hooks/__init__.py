# SPDX-License-Identifier: Apache-2.0
"""Hooks into other libraries: the replacements of their functions, and the switch that installs them."""
