# SPDX-License-Identifier: Apache-2.0
"""Operators on encoded videos."""
