# SPDX-License-Identifier: Apache-2.0
"""DALI's imperative mode (``nvidia.dali.experimental.dynamic``) as a face over ``eager``."""
