# SPDX-License-Identifier: Apache-2.0
"""Objects of accelerators. Empty: this build runs on the CPU."""
