# Formula for a tap of the owner (pilothouse/homebrew-tap). With each release: version, url and sha256 of the source distribution on PyPI.
class Pilothouse < Formula
  include Language::Python::Virtualenv

  desc "Kubernetes API server in Python"
  homepage "https://pilothouse.dev"
  url "https://files.pythonhosted.org/packages/source/p/pilothouse/pilothouse-0.3.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "Apache-2.0"

  depends_on "node" => :build
  depends_on "python@3.13"

  def install
    venv = virtualenv_create(libexec, "python3.13")
    venv.pip_install buildpath
    bin.install_symlink libexec/"bin/pilothouse", libexec/"bin/kubectl-pilothouse"
  end

  service do
    run [opt_bin/"pilothouse", "serve", "--data-dir=#{var}/pilothouse"]
    keep_alive true
  end

  test do
    (testpath/"a.yaml").write "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
    assert_match "1 objects checked", shell_output("#{bin}/pilothouse validate a.yaml")
  end
end
