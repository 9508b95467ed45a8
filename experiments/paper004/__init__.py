"""Gauthier et al.: zCDP-NFL, networked federated learning."""
