# SPDX-License-Identifier: Apache-2.0
"""Adapters to training frameworks, each imported only by who uses that framework."""
