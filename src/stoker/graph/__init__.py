# SPDX-License-Identifier: Apache-2.0
"""From nodes to a plan: lowering, passes, segments, native code."""
