# SPDX-License-Identifier: Apache-2.0
"""The operators that read data sets."""
