# SPDX-License-Identifier: Apache-2.0
"""Materialization: lazy images are computed natively where trials found equal bits, otherwise by Pillow or torch."""
