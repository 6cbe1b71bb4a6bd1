import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { KubernetesObjectApi } from '@kubernetes/client-node';
import { apply, registerBoat } from './boats.mjs';
import { ControlPlane } from './control_plane.mjs';

const CLEAN = benchObject('Snapshot', 'clean');
const DEFINITION = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'boats.example.com' },
  spec: {
    group: 'example.com',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { length: { type: 'integer', minimum: 1 } } } },
          },
        },
      },
    ],
  },
};

let plane;
let api;

before(async () => {
  plane = await ControlPlane.start('--testing');
  api = KubernetesObjectApi.makeApiClient(plane.kubeConfig());
  await apply(api, DEFINITION);
  await until(DEFINITION, isEstablished);
  await apply(api, CLEAN);
});

beforeEach(() => apply(api, { ...CLEAN, spec: { restore: true } }));

after(() => plane?.stop());

function benchObject(kind, name, spec = {}) {
  return { apiVersion: 'testing.pilothouse.dev/v1alpha1', kind, metadata: { name }, spec };
}

function isEstablished(definition) {
  return definition.status?.conditions?.some((each) => each.type === 'Established' && each.status === 'True');
}

async function until(object, holds) {
  for (;;) {
    const found = await api.read(object).catch((error) => (error.code === 404 ? undefined : Promise.reject(error)));
    if (holds(found)) return found;
    await sleep(20);
  }
}

function boat(name, length = 7) {
  return { apiVersion: 'example.com/v1', kind: 'Boat', metadata: { name, namespace: 'default' }, spec: { length } };
}

function papersOf({ metadata: { name, namespace } }) {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${name}-papers`, namespace } };
}

test('a boat of no length is refused by the schema', async () => {
  await assert.rejects(apply(api, boat('nothing', 0)), (error) => error.code === 422);
});

test('the papers of a boat go with it', async () => {
  const made = await apply(api, boat('short-lived'));
  await registerBoat(api, made);
  await api.delete(made);
  await until(papersOf(made), (found) => found === undefined);
});

test('papers are written again when the server is unwell', async () => {
  const fault = benchObject('Fault', 'unwell', {
    match: { verbs: ['patch'], resources: ['configmaps'], times: 2 },
    effect: { answer: { code: 503, message: 'not now' } },
  });
  await apply(api, fault);
  const made = await apply(api, boat('patient'));
  assert.equal((await registerBoat(api, made)).data.length, '7 m');
  assert.equal((await until(fault, (found) => found.status?.hits >= 2)).status.hits, 2);
  await api.delete(fault);
});

test('every test begins without the boats of the others', async () => {
  const found = await api.list('example.com/v1', 'Boat', 'default');
  assert.deepEqual(found.items, []);
});

test('an hour later nobody remembers that a boat has sailed', async () => {
  const made = await apply(api, boat('remembered'));
  const { apiVersion, kind, metadata } = made;
  const event = {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: 'sailed', namespace: 'default' },
    involvedObject: { apiVersion, kind, name: metadata.name, namespace: metadata.namespace, uid: metadata.uid },
    reason: 'Sailed',
    type: 'Normal',
  };
  await apply(api, event);
  await apply(api, benchObject('Clock', 'server', { step: '61m' }));
  await until(event, (found) => found === undefined);
});
