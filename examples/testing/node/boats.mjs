// What is tested: for each Boat a ConfigMap with its papers, written again for as long as the server is unwell.
import { setTimeout as sleep } from 'node:timers/promises';

const MANAGER = 'boats';
const TRY_AGAIN = new Set([409, 429, 500, 503]);

export async function registerBoat(api, boat) {
  const { name, namespace, uid } = boat.metadata;
  const owner = { apiVersion: boat.apiVersion, kind: boat.kind, name, uid, controller: true };
  const papers = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: `${name}-papers`, namespace, ownerReferences: [owner] },
    data: { length: `${boat.spec.length} m` },
  };
  return patiently(() => apply(api, papers));
}

export function apply(api, object) {
  return api.patch(object, undefined, undefined, MANAGER, true, 'application/apply-patch+yaml');
}

async function patiently(write, tries = 5) {
  for (;;) {
    try {
      return await write();
    } catch (error) {
      tries -= 1;
      if (tries === 0 || !TRY_AGAIN.has(error.code)) throw error;
      await sleep(1000 * Number(error.headers?.['retry-after'] ?? 0.01));
    }
  }
}
