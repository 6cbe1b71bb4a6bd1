"""The distributed store: etcd v3 over gRPC. Importing any module in here imports grpc, which is an optional package."""
