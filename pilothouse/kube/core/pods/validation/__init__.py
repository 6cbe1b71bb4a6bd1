"""What a pod must look like. One file a topic; errors come in upstream's order and words."""
