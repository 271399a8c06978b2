# SPDX-License-Identifier: Apache-2.0
"""Front ends: ways to write a graph and to run it."""
