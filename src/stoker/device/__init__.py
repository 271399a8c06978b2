# SPDX-License-Identifier: Apache-2.0
"""Accelerators: opening a device, and compiling the kernels that plans run there. Imported only when a GPU is used."""
