# SPDX-License-Identifier: Apache-2.0
"""Accelerators: opening them, and the kernels that plans run there. Nothing here is imported before a GPU is used."""
