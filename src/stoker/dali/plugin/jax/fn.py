# SPDX-License-Identifier: Apache-2.0
"""``nvidia.dali.plugin.jax.fn``: not here; importing it says why, and what to do instead."""

from ....frontends.dali.missing import refuse_module

refuse_module("plugin.jax.fn")
