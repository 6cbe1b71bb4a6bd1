// Types of API objects.
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
}

export interface Metadata {
  name: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  managedFields?: ManagedField[];
  finalizers?: string[];
}

// A FieldsV1 set.
export type Fields = { [key: string]: Fields };

export interface ManagedField {
  manager: string;
  operation: string;
  apiVersion?: string;
  time?: string;
  fieldsV1?: Fields;
  subresource?: string;
}

export interface KubeObject {
  apiVersion: string;
  kind: string;
  metadata: Metadata;
  [field: string]: unknown;
}

export interface Condition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface Status {
  message: string;
  reason?: string;
  code: number;
  details?: { causes?: { reason?: string; message: string; field?: string }[]; retryAfterSeconds?: number };
}

export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
