# SPDX-License-Identifier: Apache-2.0
"""What is in a folder of photographs, before it is used."""
