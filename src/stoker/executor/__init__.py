# SPDX-License-Identifier: Apache-2.0
"""The Python side of a run: what comes next, what is under way, what is handed over."""
