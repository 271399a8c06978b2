# SPDX-License-Identifier: Apache-2.0
"""Definitions of types, expressions, operators, readers, batches and errors. Nothing runs here."""
