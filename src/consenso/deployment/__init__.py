"""What serve, join and peer do with a study: certificates, folders, status, and the run itself."""
