# SPDX-License-Identifier: Apache-2.0
"""The operators: one class in one file each."""
