# SPDX-License-Identifier: Apache-2.0
"""Operators in C++: their declarations, compilation and loading (``stoker.cpp``)."""
