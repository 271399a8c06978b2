# SPDX-License-Identifier: Apache-2.0
"""Adapters to training frameworks. Each is imported only by users of its framework."""
