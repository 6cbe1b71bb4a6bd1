"""Certificate controllers: root CA publication, and CertificateSigningRequests."""
