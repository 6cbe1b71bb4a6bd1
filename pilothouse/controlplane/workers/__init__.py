"""One server as several processes: a supervisor, the store process, and workers.

    pilothouse serve --workers 2          supervisor: data directory, certificates, the port's number
      ├── store                           the embedded store, which all workers share over sockets
      ├── worker 1                        aggregator → kube → extensions, and the controllers
      └── worker 2                        aggregator → kube → extensions

All workers listen on the same port. With etcd there is no store process: each worker has its own connections.
"""
