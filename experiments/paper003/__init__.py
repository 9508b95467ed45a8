"""Ryu and Kim: DP-IADMM-Prox and DP-IADMM-Trust."""
