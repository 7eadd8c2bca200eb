//! Entries of a pool server. Compare-and-set is end to end: the server only passes it on.

use std::sync::PoisonError;
use std::time::Duration;

use vesta_intf::grpc::v1::{
    GetEntryRequest, ListEntriesRequest, OpenPoolResponse, PutEntriesRequest, PutEntry, StoreWriter,
};
use vesta_service::contract::UnixMillis;
use vesta_service::lease::{Doubt, Put, StoreError, Timing, Writer};

use super::{Connection, PoolServer, explain};
use crate::remote::{Entries, Kv, Result};

impl Kv for PoolServer {
    const HAS_CLOCK: bool = true;
    const MAY_FORGET: bool = true;
    const ASKS_USUAL_WINDOW: bool = true;
    const KEEPS_OWNERS: bool = true;

    /// As the server says; until it has answered, the shortest one of any store on the network.
    fn usual_window(&self) -> Duration {
        let shortest = Timing::IN_MEMORY.window;
        let opened = self.opened.get();
        opened.map_or(shortest, |it| Duration::from_millis(it.usual_window_ms))
    }

    async fn list(&self, to: &mut Connection, area: &str) -> Result<Entries> {
        self.get_all(to, area, &[]).await
    }

    async fn get_all(&self, to: &mut Connection, area: &str, keys: &[String]) -> Result<Entries> {
        let failed = |server: &str| {
            let server = server.to_owned();
            move |status| explain(&server, &status)
        };
        let request = self.request(ListEntriesRequest {
            area: area.into(),
            identity: self.identity(),
            keys: keys.to_vec(),
        });
        let answer = to.client.list(request).await.map_err(failed(&to.server))?;
        let (mut pages, mut entries) = (answer.into_inner(), Vec::new());
        while let Some(page) = pages.message().await.map_err(failed(&to.server))? {
            entries.extend(page.entries.into_iter().map(|it| (it.key, it.value)));
        }
        Ok(entries)
    }

    async fn get(&self, to: &mut Connection, area: &str, key: &str) -> Result<Option<String>> {
        let [area, key] = [area, key].map(str::to_owned);
        let request = self.request(GetEntryRequest {
            area,
            key,
            identity: self.identity(),
        });
        let answer = to.client.get(request).await;
        let answer = answer.map_err(|status| explain(&to.server, &status))?;
        Ok(answer.into_inner().value)
    }

    async fn put_all(&self, to: &mut Connection, area: &str, puts: &[Put]) -> Result<Vec<bool>> {
        self.look_again(to).await?;
        let put = |Put {
                       key,
                       old,
                       new,
                       secret,
                   }: &Put| PutEntry {
            key: key.clone(),
            old: old.clone(),
            new: new.clone(),
            secret: secret.bytes().map(Vec::from),
        };
        let request = self.request(PutEntriesRequest {
            area: area.into(),
            puts: puts.iter().map(put).collect(),
            identity: self.identity(),
        });
        let answer = to.client.put(request).await;
        let answer = answer.map_err(|status| explain(&to.server, &status))?;
        let done = answer.into_inner().done;
        if done.len() != puts.len() {
            let flaw = format!("{}: the response does not fit the request", to.server);
            return Err(StoreError::permanent(flaw));
        }
        Ok(done)
    }

    /// Called at each claim and about once a minute, and so the time to look at all servers.
    async fn doubt(&self, to: &mut Connection) -> Result<Option<Doubt>> {
        self.look_again(to).await?;
        let OpenPoolResponse { doubt, writer, .. } = self.facts(to).await?;
        *self.writer.lock().unwrap_or_else(PoisonError::into_inner) = writer;
        Ok(doubt.map(|doubt| Doubt::of(doubt.why, doubt.took_over)))
    }

    fn writer(&self) -> Option<Writer> {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer
            .clone()
            .map(|StoreWriter { server, unseen }| Writer { server, unseen })
    }

    async fn now(&self, to: &mut Connection) -> Result<Option<UnixMillis>> {
        let now = self.facts(to).await?.now_ms;
        Ok(now.map(UnixMillis))
    }
}
