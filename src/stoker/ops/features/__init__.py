# SPDX-License-Identifier: Apache-2.0
"""Front ends of speech models."""
