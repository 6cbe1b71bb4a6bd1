"""The distributed store: etcd v3 over gRPC. Importing this package imports the optional package grpc."""
