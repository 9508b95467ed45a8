"""How messages travel: Zenoh and Flower. What a message says is in federation."""
