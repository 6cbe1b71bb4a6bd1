// What scenarios share.
export const scenarios = {};
export const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
export const configMap = (name, data = {}) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name }, data });

// A definition that was just created takes a moment to be served, and so does an account.
export async function retried(call) {
  for (let tries = 0; ; tries++) {
    try {
      return await call();
    } catch (error) {
      if (tries > 6000) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

export async function namespace(api, name) {
  await api("POST", "/api/v1/namespaces", { metadata: { name } }).catch((error) => {
    if (!/AlreadyExists/.test(error.message)) throw error;
  });
}

// The text of the editor, which lives in a shadow tree.
export const editorText = (page) => page.locator(".cm-content").innerText();
