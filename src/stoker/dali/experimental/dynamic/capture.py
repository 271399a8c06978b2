# SPDX-License-Identifier: Apache-2.0
"""``nvidia.dali.experimental.dynamic.capture``: not here; importing it says why, and what to do instead."""

from ....frontends.dali.missing import refuse_module

refuse_module("experimental.dynamic.capture")
