# SPDX-License-Identifier: Apache-2.0
"""The take-over of torchvision scripts; public as ``stoker.torchvision``."""

from .hooks.switch import disable as disable
from .hooks.switch import enable as enable
from .hooks.switch import enabled as enabled
from .hooks.switch import is_enabled as is_enabled
from .hooks.switch import report as report
