"""Privacy: the releaser, the noise, what happened (events), what it costs (accountants), for whom (guarantees).

Every module can be imported on its own; nothing here knows of algorithms or engines.
"""
