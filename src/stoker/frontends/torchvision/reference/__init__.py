# SPDX-License-Identifier: Apache-2.0
"""Plain twins of native code: the arithmetic of Pillow and torch in Python, step by step."""
