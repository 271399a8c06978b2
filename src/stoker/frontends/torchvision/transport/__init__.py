# SPDX-License-Identifier: Apache-2.0
"""Bytes between processes: file references, descriptors and shared-memory segments."""
