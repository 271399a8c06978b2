# SPDX-License-Identifier: Apache-2.0
"""Pictures of data for people: contact sheets, diagrams, HTML for notebooks. Inputs are arrays and texts."""
