"""pod-garbage-collector-controller: deletes pods that no other component deletes."""
