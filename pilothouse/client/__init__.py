"""The client side of Kubernetes: REST, informers, work queues, controllers. Works against any cluster."""
