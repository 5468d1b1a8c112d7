// Search runs in a worker, which browsers refuse to pages from the disk; there, a hidden frame takes its place.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.documentElement.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.answer(data);
      this.scope.importScripts = (...urls) => Promise.all(urls.map((each) => this.load(each)));
      this.ready = this.load(url);
    }

    load(url) {
      const { document } = this.scope;
      const script = Object.assign(document.createElement("script"), { src: url });
      return new Promise((done, failed) => {
        script.onload = done;
        script.onerror = failed;
        document.body.append(script);
      });
    }

    postMessage(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      this.ready.then(() => setTimeout(() => this.scope.dispatchEvent(event)));
    }

    answer(data) {
      const event = new MessageEvent("message", { data: structuredClone(data) });
      setTimeout(() => {
        this.dispatchEvent(event);
        this.onmessage?.(event);
      });
    }

    terminate() {
      this.scope.frameElement.remove();
    }
  };
}
