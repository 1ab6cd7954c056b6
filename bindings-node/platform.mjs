// The platforms that have a package of their own with the compiled addon.

/** Each with what npm needs to install it only where it runs. */
export const platforms = {
  "linux-x64-gnu": { os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
};

/** The name of the platform this process runs on. */
export function here() {
  const { platform, arch } = process;
  if (platform === "linux") return `${platform}-${arch}-${isMusl() ? "musl" : "gnu"}`;
  return platform === "win32" ? `${platform}-${arch}-msvc` : `${platform}-${arch}`;
}

function isMusl() {
  return !process.report.getReport().header.glibcVersionRuntime;
}
