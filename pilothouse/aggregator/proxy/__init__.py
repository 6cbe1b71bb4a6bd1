"""The way of a request to the server that an APIService names."""
