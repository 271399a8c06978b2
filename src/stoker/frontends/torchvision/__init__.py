# SPDX-License-Identifier: Apache-2.0
"""The take-over of torchvision scripts; public as ``stoker.torchvision``."""

from .switch import disable as disable
from .switch import enable as enable
from .switch import enabled as enabled
from .switch import is_enabled as is_enabled
from .switch import report as report
