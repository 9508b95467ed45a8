"""A run whose parties are separate programs: hub, party, node, walker, their disks and messages.

How bytes travel is in transport.
"""
