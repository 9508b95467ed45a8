"""Privacy: the door, the noise, what happened (events), what it costs (accountants), for whom (theorems, guarantees).

Every module can be imported on its own; nothing here knows of algorithms or engines.
"""
