"""What serve, join, peer and Flower do with a study: certificates, folders, status, and the run itself."""
